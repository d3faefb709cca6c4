# h5.py [FILE]: all ranks write one data set of one HDF5 file, and read what others have written.
# With Debian's packages python3-h5py-mpi and python3-mpi4py, which use Open MPI.
import sys

import h5py
import numpy
from mpi4py import MPI

comm, count = MPI.COMM_WORLD, 1000
rank, size = comm.Get_rank(), comm.Get_size()
other = (rank + 1) % size
with h5py.File(sys.argv[1] if len(sys.argv) > 1 else "out.h5", "w", driver="mpio", comm=comm) as f:
    numbers = f.create_dataset("numbers", (size * count,), dtype="i4")
    numbers[rank * count:(rank + 1) * count] = numpy.arange(rank * count, (rank + 1) * count)
    f.flush()
    comm.Barrier()
    read = numbers[other * count:(other + 1) * count]
right = comm.allreduce(int((read == numpy.arange(other * count, (other + 1) * count)).all()))
if rank == 0:
    print("h5 of %d ranks: %s" % (size, "verified" if right == size else "WRONG"))
