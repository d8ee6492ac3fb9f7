package nstorm.trial;

/**
 * One sort of thing that a made bolt keeps, as Java text. In {@link #step} and {@link #show}, {@code @} stands for the place where it is
 * kept: a field, an
 * element of an array, a variable.
 *
 * @param type as it is declared
 * @param boxed the same between angle brackets
 * @param fresh makes one
 * @param step statements that change it, by {@code word} and {@code number}
 * @param show an expression that says what it is
 * @param inPlace whether the object changes, so that nothing is assigned
 */
record Sort(String type, String boxed, String fresh, String step, String show, boolean inPlace) {
    /** One whose value is another object after each step. */
    static Sort value(String type, String fresh, String step) {
        return new Sort(type, type, fresh, step, "@", false);
    }

    static Sort primitive(String type, String boxed, String fresh, String step) {
        return new Sort(type, boxed, fresh, step, "@", false);
    }

    static Sort object(String type, String fresh, String step, String show) {
        return new Sort(type, type, fresh, step, show, true);
    }

    String step(String place) {
        return step.replace("@", place);
    }

    String show(String place) {
        return show.replace("@", place);
    }
}
