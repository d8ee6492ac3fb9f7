package nstorm.store;

import java.nio.file.Path;

/** Plans written by Python, for the tests of other packages. */
public final class PlanWriting {

    private PlanWriting() {}

    public static void write(Path dir, String localPlan) throws Exception {
        Python.writePlan(dir, localPlan);
    }
}
