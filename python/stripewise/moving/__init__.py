"""Moving files' regions while programs use them: what moves when, the mover that carries it out, and how it is steered.

`schedule` says what a plan wants where in which window, `plan_follower` carries that out in time, `retarget` lays files
out without a target or over a new one; all of them move through one `MoverSession`.
"""
