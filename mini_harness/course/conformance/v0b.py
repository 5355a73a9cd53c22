"""What a tool's description, an edit and a server's tools must be like, whoever wrote them."""

from __future__ import annotations

from mini_harness.course.conformance.adapted import ADAPTED
from mini_harness.course.conformance.described import DESCRIBED
from mini_harness.course.conformance.edited import EDITED

CHECKS = (*DESCRIBED, *EDITED, *ADAPTED)
