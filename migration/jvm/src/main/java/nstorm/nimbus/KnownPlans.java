package nstorm.nimbus;

import nstorm.wire.Plan;

/** The plans as they were last read; asking does no I/O. */
interface KnownPlans {

    /** The newest plan of a topology; null if there is none. */
    Plan of(String topologyId);

    /**
     * Whether the topology's placement is to be kept: once it has a plan, even an empty one, which it gets when its
     * first move begins. Also true while plans, or this one, could not be read yet. After a failover of Nimbus a spread
     * by Storm would restart what was packed.
     */
    boolean manages(String topologyId);
}
