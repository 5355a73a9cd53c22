"""Which kernels JupyterLab offers when `mini-harness learn` starts it."""

from jupyter_client.kernelspec import KernelSpec, KernelSpecManager
from traitlets import List, Unicode

EXTENSION = "--InteractiveShellApp.extra_extensions=mini_harness.course.notebook"


class OwnKernel(KernelSpecManager):
    """Only this interpreter's `python3`: one found elsewhere may lack mini_harness.

    With no folders to search, jupyter_client falls back on the ipykernel that is installed here.
    Its kernels know `%%save` and explain a missing name from their start on.
    """

    kernel_dirs = List(Unicode())

    def get_kernel_spec(self, kernel_name: str) -> KernelSpec:
        spec = super().get_kernel_spec(kernel_name)
        spec.argv = [*spec.argv, EXTENSION]
        return spec
