"""Scripts that give what a view shows: one with hookviz, one with torch alone."""

from hookviz.view_code.edited import edited_hookviz_script, edited_torch_script
from hookviz.view_code.view import View
from hookviz.view_code.with_hookviz import hookviz_script
from hookviz.view_code.with_torch import torch_script

__all__ = ["View", "edited_hookviz_script", "edited_torch_script", "hookviz_script", "torch_script"]
