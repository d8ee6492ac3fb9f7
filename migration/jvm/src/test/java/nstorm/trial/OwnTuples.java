package nstorm.trial;

import java.util.List;

/** A bolt that needs other tuples than every other bolt gets. */
public interface OwnTuples {
    /** The values of one tuple. */
    List<Object> values(int number);
}
