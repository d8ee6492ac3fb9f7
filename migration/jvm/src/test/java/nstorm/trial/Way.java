package nstorm.trial;

/** How a bolt was moved. */
public enum Way {
    /** Two copies worked at once. */
    LIVE,
    /** The source stopped first, and nothing travelled. */
    STOPPED,
    CARRY,
    DRAIN,
    STAYS
}
