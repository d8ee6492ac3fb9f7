package nstorm.proof;

import java.io.IOException;

/** It cannot travel this time, and what it lacked is known from now on: the next time it does. */
public final class Learnt extends IOException {
    private static final long serialVersionUID = 1L;

    Learnt(String message) {
        super(message);
    }
}
