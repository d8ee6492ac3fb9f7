package nstorm.check;

import java.util.Map;
import net.bytebuddy.asm.Advice;
import org.apache.storm.generated.StormTopology;

/** The bytecode template that is copied into Storm's method. */
final class CheckAdvice {

    private CheckAdvice() {}

    /** Into {@code StormSubmitter.submitTopologyAs}, which is skipped. Nothing is suppressed: a fault of ours submits nothing. */
    static final class Submit {
        @Advice.OnMethodEnter(skipOn = Advice.OnNonDefaultValue.class)
        static boolean enter(
                @Advice.Argument(0) String name,
                @Advice.Argument(1) Map<String, Object> conf,
                @Advice.Argument(2) StormTopology topology) {
            return CheckTopology.submitted(name, conf, topology);
        }
    }
}
