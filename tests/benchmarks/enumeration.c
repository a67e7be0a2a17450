/* The loops of smalldb/kernels/enumeration.py in C, for ranks of one byte: what a compiler makes of them. */
#include <stdint.h>
#include <string.h>

typedef int64_t number;
typedef uint8_t rank;

static rank larger(rank a, rank b) { return a > b ? a : b; }

static void largest(rank *restrict found, const rank *restrict first, const rank *restrict second,
                    const rank *restrict third, number ways)
{
    for (number p = 0; p < ways; p++)
        found[p] = larger(larger(found[p], first[p]), larger(second[p], third[p]));
}

/* Count the candidates of each rank into four banks, one after the other; return the candidates passed. */
number visit(number rows, number floor, number cells, number queries, const number *origins,
             const number *touch_starts, const number *touch_queries, const number *touch_weights,
             const number *settle_starts, const number *settle_queries, const number *settle_weights,
             const rank *ranks, number live_count, const number *live, const number *ways_of,
             const number *starts, const rank *table, number most, number goal, number levels, number *banks)
{
    number counts[cells], positions[queries], left[cells + 1], tops[cells + 1], passed = 0, cell = 0;
    rank found[most];
    number *a = banks, *b = a + levels, *c = b + levels, *d = c + levels;
    memset(counts, 0, sizeof counts);
    memcpy(positions, origins, sizeof positions);
    left[0] = rows;
    tops[0] = floor;
    counts[0] = rows;
    for (number t = touch_starts[0]; t < touch_starts[1]; t++)
        positions[touch_queries[t]] += rows * touch_weights[t];
    for (;;) {
        for (number i = cell; i < cells; i++) {
            number rest = left[i] - counts[i], top = tops[i];
            for (number s = settle_starts[i]; s < settle_starts[i + 1]; s++) {
                number seen = ranks[positions[settle_queries[s]] + rest * settle_weights[s]];
                top = seen > top ? seen : top;
            }
            left[i + 1] = rest;
            tops[i + 1] = top;
        }
        number rest = left[cells], ways = ways_of[rest], last = live_count - 1, p;
        memset(found, (int)tops[cells], (size_t)ways);
        for (number q = 0; q <= last; q += 3) {
            number r = q + 1 < last ? q + 1 : last, s = q + 2 < last ? q + 2 : last;
            const number *start = starts + rest * live_count;
            const rank *first = table + start[q] + positions[live[q]] * ways;
            const rank *second = table + start[r] + positions[live[r]] * ways;
            const rank *third = table + start[s] + positions[live[s]] * ways;
            largest(found, first, second, third, ways);
        }
        for (p = 0; p < ways - 7; p += 8) { /* eight ranks at a time, as one word */
            uint64_t eight;
            memcpy(&eight, found + p, 8);
            a[eight & 255]++;
            b[eight >> 8 & 255]++;
            c[eight >> 16 & 255]++;
            d[eight >> 24 & 255]++;
            a[eight >> 32 & 255]++;
            b[eight >> 40 & 255]++;
            c[eight >> 48 & 255]++;
            d[eight >> 56]++;
        }
        for (; p < ways; p++)
            a[found[p]]++;
        passed += ways;
        if (passed >= goal)
            return passed;
        cell = cells - 1;
        while (counts[cell] == 0)
            cell--;
        counts[cell]--;
        for (number t = touch_starts[cell]; t < touch_starts[cell + 1]; t++)
            positions[touch_queries[t]] -= touch_weights[t];
        if (cell + 1 < cells) {
            number moved = left[cell + 1] + 1;
            counts[cell + 1] += moved;
            for (number t = touch_starts[cell + 1]; t < touch_starts[cell + 2]; t++)
                positions[touch_queries[t]] += moved * touch_weights[t];
        }
    }
}
