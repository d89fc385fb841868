"""The environment variables by which libraries for parallel computing are told how many threads to use."""

VARIABLES = (
    "BLIS_NUM_THREADS", "GOMAXPROCS", "GOTO_NUM_THREADS", "JULIA_NUM_THREADS", "MKL_NUM_THREADS",
    "NUMBA_NUM_THREADS", "NUMEXPR_NUM_THREADS", "OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS",
    "POLARS_MAX_THREADS", "RAYON_NUM_THREADS", "TBB_NUM_THREADS", "VECLIB_MAXIMUM_THREADS",
)  # fmt: skip
