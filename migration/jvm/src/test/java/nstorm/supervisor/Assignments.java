package nstorm.supervisor;

import java.util.ArrayList;
import java.util.List;
import org.apache.storm.generated.ExecutorInfo;
import org.apache.storm.generated.LocalAssignment;
import org.apache.storm.generated.WorkerResources;

/** Storm's local assignments as its supervisors make them. */
final class Assignments {

    private Assignments() {}

    static LocalAssignment of(String topology, String owner, int... tasks) {
        List<ExecutorInfo> executors = new ArrayList<>();
        for (int task : tasks) {
            executors.add(new ExecutorInfo(task, task));
        }
        WorkerResources resources = new WorkerResources();
        resources.set_mem_on_heap(128.0 * tasks.length);
        LocalAssignment assignment = new LocalAssignment(topology, executors);
        assignment.set_resources(resources);
        assignment.set_owner(owner);
        return assignment;
    }
}
