# The README's two commands, offline once the image is built:
#
#     docker build --tag smalldb .
#     docker run --rm --network none smalldb                                                     # the first
#     docker run --rm --network none smalldb bash -euc '. ./command1.sh && . ./command2.sh'      # and the tests
FROM python:3.13-slim
WORKDIR /smalldb
COPY . .
# all that pip will ask for, as wheels
RUN pip wheel --no-cache-dir --quiet --wheel-dir /wheels '.[test]' 'hatchling>=1.24' 'editables>=0.3'
ENV PIP_NO_INDEX=1 PIP_FIND_LINKS=/wheels
RUN awk '/^```sh$/ {n += 1; on = 1; next} /^```/ {on = 0} on {print > ("command" n ".sh")}' README.md
CMD ["bash", "-eu", "command1.sh"]
