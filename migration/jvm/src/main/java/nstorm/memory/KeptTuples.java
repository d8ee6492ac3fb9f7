package nstorm.memory;

import java.lang.reflect.Field;
import java.nio.Buffer;
import java.util.Arrays;
import java.util.Collection;
import java.util.List;
import java.util.Map;
import java.util.Set;
import org.apache.storm.tuple.Tuple;
import org.apache.storm.utils.BatchHelper;

/**
 * Whether bolts still keep tuples to ack them later. Their fields show it better than a count of acks. What is in no field cannot be acked
 * any more, and nothing is counted for each tuple.
 */
public final class KeptTuples {
    private static final int DEPTH = 8;

    private KeptTuples() {}

    /**
     * True if these fields hold nothing: no object, or collections, arrays and Storm's batches of nothing. The keys of a map may be values.
     * To be called where nothing else touches the bolts.
     */
    public static boolean none(List<Object> bolts, Set<String> fields) {
        for (Object bolt : bolts) {
            for (Field field : BoltFields.named(bolt, fields)) {
                if (!isNothing(BoltFields.get(field, bolt))) {
                    return false;
                }
            }
        }
        return true;
    }

    private static boolean isNothing(Object value) {
        if (value instanceof Map<?, ?> map) {
            return isNothing(map.values()) && isNoTuple(map.keySet(), DEPTH);
        } else if (value instanceof Collection<?> many) {
            return many.stream().allMatch(KeptTuples::isNothing);
        } else if (value instanceof BatchHelper batch) {
            return isNothing(batch.getBatchTuples());
        } else if (value instanceof Object[] array) {
            return Arrays.stream(array).allMatch(KeptTuples::isNothing);
        }
        return value == null;
    }

    /** Whether a key is a value, or made of values alone; what is nested deeper than `depth` may hold anything. */
    private static boolean isNoTuple(Object key, int depth) {
        if (key == null || isPlain(key.getClass()) || key instanceof Buffer) {
            return true;
        } else if (key instanceof Tuple || depth == 0) {
            return false;
        } else if (key instanceof Map<?, ?> map) {
            return isNoTuple(map.keySet(), depth - 1) && isNoTuple(map.values(), depth - 1);
        } else if (key instanceof Map.Entry<?, ?> pair) {
            return isNoTuple(pair.getKey(), depth - 1) && isNoTuple(pair.getValue(), depth - 1);
        } else if (key instanceof Collection<?> many) {
            return many.stream().allMatch(one -> isNoTuple(one, depth - 1));
        } else if (key instanceof Object[] array) {
            return Arrays.stream(array).allMatch(one -> isNoTuple(one, depth - 1));
        }
        return ObjectFields.of(key.getClass()).stream()
                .allMatch(field -> isPlain(field.getType())
                        || field.trySetAccessible() && isNoTuple(BoltFields.read(field, key), depth - 1));
    }

    private static boolean isPlain(Class<?> type) {
        return type.isPrimitive() || type.isEnum() || Known.isConstant(LiveTypes.nameOf(type));
    }
}
