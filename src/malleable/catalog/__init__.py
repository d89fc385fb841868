"""Kinds of speedups, distributions, arrivals and policies: found by name, built with options, listed."""

from malleable.catalog.families import FAMILIES as FAMILIES
from malleable.catalog.finding import build as build
from malleable.catalog.finding import display as display
from malleable.catalog.finding import find as find
from malleable.catalog.finding import from_document as from_document
from malleable.catalog.finding import incomplete as incomplete
from malleable.catalog.finding import kinds as kinds
from malleable.catalog.finding import normalised as normalised
from malleable.catalog.finding import parse_options as parse_options
from malleable.catalog.finding import singular as singular
from malleable.catalog.finding import split_policies as split_policies
from malleable.catalog.user_files import load_object as load_object
