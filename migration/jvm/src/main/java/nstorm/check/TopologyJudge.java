package nstorm.check;

import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Set;
import nstorm.load.OwnWay;
import nstorm.memory.BoltMemory;
import nstorm.memory.Declared;
import nstorm.memory.MoveWay;
import nstorm.memory.Reviewed;
import nstorm.proof.Memory;
import nstorm.state.StateClasses;
import nstorm.wire.Way;
import org.apache.storm.generated.ComponentCommon;
import org.apache.storm.generated.ComponentObject;
import org.apache.storm.generated.ShellComponent;
import org.apache.storm.generated.StormTopology;
import org.apache.storm.spout.ShellSpout;
import org.apache.storm.task.IBolt;
import org.apache.storm.task.ShellBolt;
import org.apache.storm.utils.Utils;

/** Judges for each component of a topology how a worker would move its executors. */
final class TopologyJudge {
    private final StormTopology topology;
    private final Map<String, Object> conf;
    private final Declared declared;
    /** Null where nothing is to be prepared. */
    private final PreparedBolts prepared;

    /** @param conf the topology's, with Storm's own below it */
    TopologyJudge(StormTopology topology, Map<String, Object> conf, boolean prepare) {
        this.topology = topology;
        this.conf = conf;
        declared = Declared.of(conf);
        prepared = prepare ? new PreparedBolts(topology, conf) : null;
    }

    List<JudgedComponent> judge() {
        List<JudgedComponent> judged = new ArrayList<>();
        topology.get_spouts()
                .forEach((id, spout) -> judged.add(judge(id, true, spout.get_spout_object(), spout.get_common())));
        topology.get_bolts()
                .forEach((id, bolt) -> judged.add(judge(id, false, bolt.get_bolt_object(), bolt.get_common())));
        return judged;
    }

    private JudgedComponent judge(String id, boolean spout, ComponentObject serialized, ComponentCommon common) {
        String kind = spout ? "spout" : "bolt";
        int executors = Math.max(1, common.get_parallelism_hint());
        Object object;
        try {
            object = taskObject(spout, Utils.getSetComponentObject(serialized));
        } catch (Exception | LinkageError | StackOverflowError e) {
            return JudgedComponent.unread(
                    id, kind, executors, "it cannot be made from the topology's bytes (" + e + ")");
        }
        try {
            String type = BoltMemory.user(object).getClass().getName();
            return judge(new JudgedComponent(id, kind, type, executors, "", "", false), spout, object);
        } catch (RuntimeException | LinkageError | StackOverflowError e) {
            return JudgedComponent.unread(id, kind, executors, "it cannot be looked into (" + e + ")");
        }
    }

    /** As a worker makes one. */
    private static Object taskObject(boolean spout, Object object) {
        if (!(object instanceof ShellComponent shell)) {
            return object;
        }
        return spout ? new ShellSpout(shell) : new ShellBolt(shell);
    }

    private JudgedComponent judge(JudgedComponent component, boolean spout, Object object) {
        OwnWay own = OwnWay.of(component.component(), spout, object, declared);
        if (own.way() == Way.SPOUT) {
            return judgeSpout(component, object);
        } else if (own.reason() != null) {
            return component.staying(own);
        } else if (declared.isLive(component.component())) {
            return component.by(new MoveWay(null), false);
        } else if (prepared == null || Reviewed.of(object) != null) {
            MoveWay guess = MoveWay.of(component.component(), object, declared);
            return component.by(
                    new StateClasses(Set.of(), declared).naming(guess, object), Reviewed.of(object) == null);
        }
        return component.by(wayOncePrepared(component.component(), (IBolt) object), false);
    }

    private JudgedComponent judgeSpout(JudgedComponent component, Object spout) {
        Reviewed.Verdict verdict = Reviewed.of(spout);
        boolean trusted = verdict != null || declared.trusts(component.component());
        MoveWay way = trusted ? new MoveWay(null) : MoveWay.ofSpout(component.component(), spout, null);
        return way.pinned() == null ? component.handedOver(verdict) : component.by(way, true);
    }

    private MoveWay wayOncePrepared(String component, IBolt object) {
        PreparedBolts.Bolt bolt = prepared.prepare(component, object);
        if (bolt.failure() != null) {
            return new MoveWay(bolt.failure());
        }
        Memory memory = new Memory(
                component, List.of(object), List.of(bolt.context()), declared, conf, bolt.context(), bolt.collector());
        memory.prepared();
        memory.read();
        return memory.way();
    }
}
