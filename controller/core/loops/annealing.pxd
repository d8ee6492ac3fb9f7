# The C types of annealing.py. Types of other variables follow from these.
cimport cython
from libc cimport math
from libc.stdint cimport int64_t, uint8_t, uint32_t

cdef int64_t MOST_IN_GROUP, TRIES
cdef double PRICE_STEP, PRICE_LEAST, PRICE_MOST, OFTEN, SELDOM, ROUNDING_CORES


@cython.final
cdef class Chance:
    cdef object source
    cdef uint32_t[::1] words
    cdef Py_ssize_t at

    cdef int64_t _word(self) except -1
    cpdef double share(self) except -1.0
    cpdef int64_t below(self, int64_t count) except -1


@cython.final
cdef class Board:
    cdef const int64_t[::1] first, peers, start, movable, open, node_of, unit_of
    cdef const int64_t[:, ::1] space_of
    cdef int64_t spaces
    cdef const double[::1] pull, hop_tps, loudest_pull, far
    cdef const double[:, ::1] held, costs, saved
    cdef const uint8_t[::1] is_movable, is_open
    cdef double price_tps, tolerance_cores, stray, together, back
    cdef bint within, hops_cost


@cython.final
cdef class _Walk:
    cdef int64_t[::1] place, who, origin, goal
    cdef double[:, ::1] cpu, space
    cdef Chance chance


@cython.locals(node=int64_t, worker=int64_t)
cdef double _gain(Board board, _Walk walk, int64_t e, int64_t to) noexcept
@cython.locals(end=int64_t, i=int64_t, most=int64_t)
cdef int64_t _gather(Board board, _Walk walk, int64_t begin, int64_t goal) except -1
cdef bint _goes(_Walk walk, int64_t begin, int64_t end, int64_t e) noexcept
@cython.locals(at=int64_t)
cdef int64_t _another_on(Board board, _Walk walk, int64_t worker, int64_t but) except -2
cdef int64_t _roomiest(Board board, _Walk walk) noexcept
@cython.locals(to=int64_t)
cdef int64_t _draw(Board board, _Walk walk, bint is_full) except -1
cpdef double shift(
    double[:, ::1] left, int64_t row, int64_t source, int64_t target, double came, double went
) noexcept
cdef double _too_much(
    const double[:, ::1] left, int64_t row, int64_t one, int64_t other
) noexcept
@cython.locals(node=int64_t, worker=int64_t)
cdef double _shift(Board board, _Walk walk, int64_t e, int64_t to) noexcept
cdef double _excess(_Walk walk) noexcept
@cython.locals(
    best=int64_t[::1],
    full=int64_t,
    tries=int64_t,
    excess=double,
    gained=double,
    gain=double,
    more=double,
)
cpdef object anneal(
    Board board,
    int64_t[::1] place,
    double[:, ::1] cpu,
    double[:, ::1] space,
    int64_t rounds,
    double hot,
    double cold,
    double excess_price,
    int64_t seed,
)
