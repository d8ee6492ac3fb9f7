package nstorm.trial;

import java.lang.annotation.Retention;
import java.lang.annotation.RetentionPolicy;

/** How a bolt may move once it has worked, the best way first. To stay is always right. */
@Retention(RetentionPolicy.RUNTIME)
public @interface Right {
    /** The ways that lose and change nothing. */
    Way[] value();
}
