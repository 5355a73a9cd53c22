"""Which kernels JupyterLab offers when `mini-harness learn` starts it."""

from jupyter_client.kernelspec import KernelSpecManager
from traitlets import List, Unicode


class OwnKernel(KernelSpecManager):
    """Only this interpreter's `python3`: one found elsewhere may lack mini_harness.

    With no folders to search, jupyter_client falls back on the ipykernel that is installed here.
    """

    kernel_dirs = List(Unicode())
