"""The schedulers of Aniello, Baldoni and Querzoni (002).

What the text lacks comes from the authors' published code
(github.com/leonardoaniello/storm-adaptive-schedulers), of which only the facts are used here.
"""
