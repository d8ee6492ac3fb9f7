package nstorm.memory;

import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/** A class whose logger anybody may replace. */
final class LooseLogger {
    static Logger log = LoggerFactory.getLogger(LooseLogger.class);

    private LooseLogger() {}

    static void log(String text) {
        log.info(text);
    }
}
