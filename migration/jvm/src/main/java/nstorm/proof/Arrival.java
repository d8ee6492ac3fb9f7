package nstorm.proof;

import java.io.ByteArrayInputStream;
import java.io.DataInputStream;
import java.io.IOException;
import java.util.Set;

/** What a target's bolts have been given, before it is known whether it is what the source's had. */
public final class Arrival {
    private final String component;
    private final Set<String> fields;
    private final Subject subjectOrNull;
    private final String unseen;
    private TravelProof seen;

    Arrival(String component, Set<String> fields, Subject subjectOrNull, String unseen) {
        this.component = component;
        this.fields = fields;
        this.subjectOrNull = subjectOrNull;
        this.unseen = unseen;
    }

    void look() {
        seen = TravelProof.of(subjectOrNull, fields, null);
    }

    /** What of the fields is not as at the source, with its path; null if all is. A source that trusts its bolts sends an empty proof. */
    public String differs(byte[] proof) throws IOException {
        if (proof.length == 0) {
            return null;
        } else if (subjectOrNull == null) {
            return unseen;
        }
        if (seen == null) {
            look();
        }
        String difference = seen.difference(new DataInputStream(new ByteArrayInputStream(proof)));
        return difference == null ? null : "came as another one than it left: " + component + "." + difference;
    }
}
