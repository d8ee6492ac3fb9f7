package nstorm.memory;

/** The code does something for which it is unknown what it keeps. */
final class Undecided extends RuntimeException {
    private static final long serialVersionUID = 1L;

    Undecided(String why) {
        super(why, null, false, false);
    }
}
