"""All compiled code, one file an algorithm; a kernel calls only kernels of its own file."""
