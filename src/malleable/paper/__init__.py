"""The paper, reproduced and taken further: experiments, their store, and the page made from them."""
