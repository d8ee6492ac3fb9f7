package nstorm.memory;

import java.util.concurrent.TimeUnit;

/** Has a table of the compiler's, in a class that is made for it. */
final class SwitchesOverUnit {
    private SwitchesOverUnit() {}

    static String shown(TimeUnit unit) {
        switch (unit) {
            case SECONDS:
                return "s";
            case MINUTES:
                return "min";
            default:
                return "?";
        }
    }
}
