"""MPI-IO through mpi4py, parallel HDF5 and netCDF as Debian builds them, and the serial tools of both formats."""

from __future__ import annotations

from .case import Case

MPI4PY = """
cat > "$T/p.py" <<'X'
import numpy as np
from mpi4py import MPI
c = MPI.COMM_WORLD; r, n = c.rank, c.size
f = MPI.File.Open(c, "a", MPI.MODE_CREATE | MPI.MODE_RDWR); mine = np.arange(20000, dtype="i4") + r * 20000
f.Write_at_all(r * mine.nbytes, mine); f.Sync(); c.Barrier(); f.Sync(); other = np.empty_like(mine)
o = (r + 1) % n; f.Read_at(o * mine.nbytes, other); assert (other == np.arange(20000) + o * 20000).all()
f.Close()
f = MPI.File.Open(c, "b", MPI.MODE_CREATE | MPI.MODE_RDWR); kind = MPI.INT.Create_vector(100, 50, 50 * n).Commit()
f.Set_view(r * 200, MPI.INT, kind); f.Write_all(mine[:5000]); f.Seek(0); back = np.empty(5000, "i4")
f.Read_all(back); assert (back == mine[:5000]).all(); f.Set_atomicity(True); f.Write_at(0, mine[:100])
size = f.Get_size(); f.Close()
f = MPI.File.Open(c, "c", MPI.MODE_CREATE | MPI.MODE_WRONLY); f.Set_size(70000)
q = f.Iwrite_at(r * 1000, mine[:250]); q.Wait(); f.Preallocate(80000); f.Close()
f = MPI.File.Open(c, "d", MPI.MODE_CREATE | MPI.MODE_RDWR); f.Write_ordered(mine[:10]); f.Close(); c.Barrier()
if r == 0: print(n, size); MPI.File.Delete("c")
X
mpiexec -n 3 "$PYTHON" "$T/p.py"; md5sum a b d; ls
"""
FORMATS = """
ncgen -b -o a.nc <<X
netcdf a { dimensions: n = 5; t = UNLIMITED; variables: double v(t, n); data: v = 1, 2, 3, 4, 5, 6, 7, 8, 9, 10; }
X
ncdump a.nc; ncgen -4 -o b.nc <<X
netcdf b { dimensions: n = 3; variables: int w(n); data: w = 7, 8, 9; }
X
ncdump b.nc; nccopy -k nc7 a.nc c.nc; ncdump -h c.nc; nccopy -d 5 b.nc d.nc; ncdump -v w d.nc | tail -3
"""

CASES = [
    Case(
        name="mpi4py",
        job="collective, strided, nonblocking, atomic and ordered MPI-IO, three ranks",
        needs=("python:mpi4py", "mpiexec", "python:numpy"),
        script=MPI4PY,
    ),
    Case(
        name="hdf5-tools",
        job="h5dump, h5repack, h5copy, h5diff",
        needs=("h5dump", "h5repack", "python:h5py"),
        script="""
"$PYTHON" -c "import h5py, numpy as n; f = h5py.File('a.h5', 'w'); f['d'] = n.arange(9999); f['e/x'] = n.ones((30, 40))"
h5dump -d /e/x -s 0,0 -c 2,3 a.h5; h5repack -f GZIP=5 a.h5 b.h5; h5diff a.h5 b.h5 && echo equal
h5copy -i a.h5 -o c.h5 -s d -d d; h5ls -r c.h5; h5stat a.h5 | grep 'unique datasets'
""",
        volatile=("*.h5",),
        heavy=True,
    ),
    Case(
        name="netcdf",
        job="ncgen, ncdump, nccopy",
        needs=("ncgen", "ncdump", "nccopy"),
        version="ncdump 2>&1",
        script=FORMATS,
        volatile=("*.nc",),
        heavy=True,
    ),
    Case(
        name="parallel-hdf5",
        job="independent and collective transfers over Debian's MPICH, four ranks",
        needs=("h5pcc.mpich", "mpiexec.mpich"),
        version="h5pcc.mpich -showconfig | grep 'HDF5 Version'",
        sources=("parallel.c",),
        build="h5pcc.mpich -O1 -o parallel parallel.c",
        script='mpiexec.mpich -n 4 "$W/parallel" d; ls; mpiexec.mpich -n 2 "$W/parallel" e',
        volatile=("*.h5",),
        heavy=True,
    ),
    Case(
        name="parallel-netcdf",
        job="netCDF-4 over Open MPI's MPI-IO, three ranks",
        needs=("pkg-config:netcdf-mpi", "mpicc.openmpi", "mpirun.openmpi"),
        sources=("netcdf.c",),
        build="""
where=/usr/lib/$(gcc -print-multiarch)/netcdf/mpi/include
mpicc.openmpi -O1 -o netcdf netcdf.c -I"$where" $(pkg-config --cflags --libs netcdf-mpi)
""",
        script="""
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
mpirun.openmpi --oversubscribe -n 3 "$W/netcdf" a.nc; ls
""",
        volatile=("*.nc",),
        heavy=True,
    ),
]
