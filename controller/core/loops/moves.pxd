# The C types of moves.py. Types of other variables follow from these.
cimport cython
from libc.stdint cimport int64_t, uint8_t, uint32_t

cdef int64_t _NOT_LOOKED_AT
cdef double ROUNDING, _NO_SCORE, _ALL_WHOLE


@cython.final
cdef class World:
    cdef const int64_t[::1] begin, place, node_of, unit_of, roomiest, taken
    cdef const uint32_t[::1] peer, row
    cdef const double[::1] tps, hop_tps, hop_scale, demand, doubt, room, memory, memory_left
    cdef double hop_node, hop_worker, weight_node, weight_worker
    cdef bint is_any_taken, counts_memory
    cdef Bars bars


@cython.final
cdef class Bars:
    cdef const int64_t[::1] sender, group
    cdef const double[::1] rate, bare
    cdef const double[:, :, ::1] sent, limit
    cdef const double[:, ::1] kept, filled, may
    cdef const uint8_t[::1] is_bare
    cdef double[:, :, ::1] change
    cdef bint has_barred


@cython.final
cdef class _Scratch:
    cdef double[::1] with_worker, with_node, hops_worker, hops_node
    cdef int64_t[::1] workers, stamp
    cdef uint8_t[::1] fits


cdef double _one_if(bint is_true) noexcept
cpdef double weigh(
    double node, double worker, double between_nodes, double between_workers
) noexcept
cdef double _rounded(double value) noexcept
cdef (double, double) _change(
    bint stays, double need, double own, double here, double there
) noexcept
cdef bint _holds(
    double largest,
    double largest_home,
    bint stays,
    double need,
    double own,
    double here,
    double there,
) noexcept
cdef (double, double, double) _near(
    const int64_t[::1] begin,
    const uint32_t[::1] peer,
    const uint32_t[::1] row,
    const double[::1] tps,
    const double[::1] scale,
    const int64_t[::1] place,
    const int64_t[::1] node_of,
    double hop_node,
    double hop_worker,
    int64_t e,
    int64_t w,
) noexcept

@cython.locals(used=double[::1])
cpdef object sums(
    const int64_t[:] place, const double[:] demand, Py_ssize_t places
)

@cython.locals(fits=uint8_t[::1])
cpdef object hold(
    const double[:] largest,
    const int64_t[:] unit_of,
    const int64_t[:] homes,
    const int64_t[:] workers,
    const double[:] need,
    const double[:, :] saved,
)

@cython.locals(came=double[::1], went=double[::1])
cpdef tuple change_each(
    const uint8_t[:] stays,
    const double[:] need,
    const double[:, :] saved,
)

@cython.locals(found=double[:, ::1], hop_node=double, hop_worker=double)
cpdef object near_each(
    const int64_t[::1] begin,
    const uint32_t[::1] peer,
    const uint32_t[::1] row,
    const double[::1] tps,
    const double[::1] scale,
    const int64_t[::1] place,
    const int64_t[::1] node_of,
    object hop,
    const int64_t[:] executors,
    const int64_t[:] workers,
)

cdef bint _is_taken(World world, int64_t one, int64_t other) noexcept
cdef double _brings_memory(World world, int64_t e, int64_t w) noexcept

@cython.locals(found=int64_t[::1], most=double[::1])
cpdef object roomiest(
    const double[:] room,
    const uint8_t[:] is_open,
    const int64_t[:] node_of,
    Py_ssize_t nodes,
)

@cython.locals(listed=int64_t)
cdef int64_t _sum_by_place(World world, _Scratch scratch, int64_t e) noexcept

@cython.locals(listed=int64_t)
cdef int64_t _with_roomiest(
    World world, _Scratch scratch, int64_t e, int64_t with_peers
) noexcept
cdef void _clear(World world, _Scratch scratch, int64_t with_peers) noexcept
@cython.locals(own=double)
cdef int64_t _fit(World world, _Scratch scratch, int64_t e, int64_t with_peers) noexcept
cpdef bint may_move(World world, int64_t e, int64_t w) except -1
cdef (double, double, double) _near_in(World world, int64_t e, int64_t w) noexcept
cdef double _brings(World world, int64_t e, int64_t w) noexcept
cdef bint _takes_both(World world, int64_t one, int64_t other, int64_t w) noexcept

cpdef bint has_barred(World world) except -1
cpdef bint is_barred(World world, int64_t e, int64_t w) except -1
cdef bint _is_barred(World world, Bars bars, int64_t e, int64_t w) noexcept

@cython.locals(own=int64_t, n=int64_t, d=int64_t, more=double)
cdef bint _fills_a_link(
    World world, Bars bars, int64_t e, int64_t one, int64_t other
) noexcept

@cython.locals(best=int64_t, best_score=double, bars=Bars)
cdef (int64_t, double) _best_of(
    World world, _Scratch scratch, int64_t e, double above
) noexcept

@cython.locals(
    count=int64_t,
    who=int64_t[::1],
    to=int64_t[::1],
    asc=double[::1],
    gain=double[::1],
    with_worker=double[::1],
    with_node=double[::1],
)
cpdef tuple score(
    World world, const int64_t[:] executors, const int64_t[:] workers
)

@cython.locals(
    most=int64_t,
    who=int64_t[::1],
    to=int64_t[::1],
    asc=double[::1],
    gain=double[::1],
)
cpdef tuple gather(World world, const int64_t[:] executors)

@cython.locals(found=double[::1])
cpdef object doubts(
    const int64_t[:] source,
    const int64_t[:] target,
    const double[:] var,
    double times,
    const uint8_t[:] movable,
)

@cython.locals(found=double[::1])
cpdef object loudest(
    const int64_t[:] source,
    const int64_t[:] target,
    const double[:] tps,
    const int64_t[:] begin,
)

@cython.locals(within=double[::1], elsewhere=double[::1])
cpdef tuple bounds(World world, const uint8_t[:] movable)

@cython.locals(seen=int64_t[::1])
cpdef tuple best(
    World world, double[:] bound, int64_t first, double above, double slack
)

@cython.locals(to=int64_t, first=double)
cpdef list open_pairs(
    World world,
    const uint8_t[:] movable,
    double[:] bound,
    const double[:] near,
    const double[:] far,
    const double[:] loudest,
    double least,
)

cdef (double, double) _score_of(World world, int64_t e, int64_t worker) noexcept
