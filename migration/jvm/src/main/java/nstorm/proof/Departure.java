package nstorm.proof;

import java.io.ByteArrayOutputStream;
import java.io.DataOutputStream;
import java.io.IOException;
import java.util.Set;
import nstorm.state.StateBytes;

/** What leaves with an executor: the bytes of the fields that travel, and the proof that they hold what the objects hold. */
public final class Departure {
    /** Makes the proof, or throws with the reason why there can be none. */
    interface Proving {
        TravelProof prove() throws IOException;
    }

    private final Set<String> fields;
    private final StateBytes state;
    private final Proving proving;

    Departure(Set<String> fields, StateBytes state, Proving proving) {
        this.fields = fields;
        this.state = state;
        this.proving = proving;
    }

    /** The names of the fields that travel. */
    public Set<String> fields() {
        return fields;
    }

    /** The bytes of what they hold. */
    public StateBytes state() {
        return state;
    }

    /**
     * What the target is to compare with; nothing where it is declared what may be forgotten. May be made while the
     * state is on its way, as nothing touches the bolts then either.
     *
     * @throws IOException if the state may not travel; the message names what and where
     */
    public byte[] proof() throws IOException {
        TravelProof proof = proving.prove();
        if (proof == null) {
            return new byte[0];
        }
        ByteArrayOutputStream bytes = new ByteArrayOutputStream();
        proof.write(new DataOutputStream(bytes));
        return bytes.toByteArray();
    }
}
