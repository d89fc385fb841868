"""The paper, reproduced and taken further: experiments, their notebook, and the page made from them."""
