import os

# Before numpy and torch are imported: two workers on two cores must not ask for four threads.
os.environ.setdefault("OMP_NUM_THREADS", "1")

from hypothesis import settings

# A slow or busy machine is no defect of the code; pytest's own timeout catches what hangs.
settings.register_profile("grokscope", deadline=None)
settings.load_profile("grokscope")
