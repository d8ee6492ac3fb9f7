package nstorm.memory;

/** The code does something of which it cannot be said what it keeps. */
final class Undecided extends RuntimeException {
    private static final long serialVersionUID = 1L;

    Undecided(String why) {
        super(why, null, false, false);
    }
}
