"""placeholder"""
from malleable.paper.experiments.e14_map_of_policies.cells import cells
