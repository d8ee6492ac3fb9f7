package nstorm.trial.bolts;

import static nstorm.trial.Way.CARRY;
import static nstorm.trial.Way.LIVE;
import static nstorm.trial.Way.STOPPED;

import com.codahale.metrics.Histogram;
import com.codahale.metrics.UniformReservoir;
import com.google.gson.JsonObject;
import java.lang.ref.SoftReference;
import java.nio.ByteBuffer;
import java.text.DecimalFormat;
import java.util.HashMap;
import java.util.Map;
import java.util.concurrent.locks.ReentrantLock;
import nstorm.trial.Right;
import org.apache.storm.metric.api.CountMetric;

/** What objects of the JDK, of libraries and of Storm keep for a bolt. */
final class Others {
    /** The garbage collector may take it, and until then it is memory. */
    @Right({})
    static final class Soft extends Case {
        transient SoftReference<Map<String, Integer>> counts;

        @Override
        void begin(Map<String, Object> conf) {
            counts = new SoftReference<>(new HashMap<>());
        }

        @Override
        Object on(String word, long number) {
            return counts.get().merge(word, 1, Integer::sum);
        }
    }

    @Right(CARRY)
    static final class ChangedFormat extends Case {
        final DecimalFormat format = new DecimalFormat("0.0");

        @Override
        Object on(String word, long number) {
            String shown = format.format(number / 3.0);
            format.setMaximumFractionDigits((int) (number % 5));
            return shown;
        }
    }

    @Right({})
    static final class JsonTree extends Case {
        transient JsonObject counts;

        @Override
        void begin(Map<String, Object> conf) {
            counts = new JsonObject();
        }

        @Override
        Object on(String word, long number) {
            counts.addProperty(word, counts.has(word) ? counts.get(word).getAsInt() + 1 : 1);
            return counts.get(word).getAsInt();
        }
    }

    @Right({})
    static final class ReadsHistogram extends Case {
        transient Histogram usual;

        @Override
        void begin(Map<String, Object> conf) {
            usual = new Histogram(new UniformReservoir());
        }

        @Override
        Object on(String word, long number) {
            boolean alarm = usual.getCount() > 5 && number > usual.getSnapshot().getMedian();
            usual.update(number % 9);
            return alarm;
        }
    }

    @Right({})
    static final class ReadsMetric extends Case {
        transient CountMetric count;

        @Override
        void begin(Map<String, Object> conf) {
            count = new CountMetric();
        }

        @Override
        Object on(String word, long number) {
            count.incr();
            return number % 5 == 4 ? count.getValueAndReset() : null;
        }
    }

    @Right({LIVE, STOPPED})
    static final class CountsMetric extends Case {
        transient CountMetric count;

        @Override
        void begin(Map<String, Object> conf) {
            count = new CountMetric();
        }

        @Override
        Object on(String word, long number) {
            count.incr();
            return word;
        }
    }

    @Right({})
    static final class TaskData extends Case {
        @Override
        void begin(Map<String, Object> conf) {
            context.setTaskData("counts", new HashMap<String, Integer>());
        }

        @Override
        @SuppressWarnings("unchecked")
        Object on(String word, long number) {
            return ((Map<String, Integer>) context.getTaskData("counts")).merge(word, 1, Integer::sum);
        }
    }

    @Right({})
    static final class SetsTaskData extends Case {
        @Override
        Object on(String word, long number) {
            Integer count = (Integer) context.getTaskData("count");
            context.setTaskData("count", count == null ? 1 : count + 1);
            return context.getTaskData("count");
        }
    }

    @Right({})
    static final class ExecutorData extends Case {
        @Override
        Object on(String word, long number) {
            Integer count = (Integer) context.getExecutorData("count");
            context.setExecutorData("count", count == null ? 1 : count + 1);
            return context.getExecutorData("count");
        }
    }

    /** Every copy gets a configuration, and this one writes into it. */
    @Right({})
    static final class WritesConf extends Case {
        transient Map<String, Object> conf;

        @Override
        void begin(Map<String, Object> conf) {
            this.conf = conf;
        }

        @Override
        Object on(String word, long number) {
            return conf.merge("count", 1, (left, right) -> (Integer) left + 1);
        }
    }

    @Right({})
    static final class DirectBuffer extends Case {
        transient ByteBuffer buffer;

        @Override
        void begin(Map<String, Object> conf) {
            buffer = ByteBuffer.allocateDirect(8);
        }

        @Override
        Object on(String word, long number) {
            buffer.putLong(0, buffer.getLong(0) + number);
            return buffer.getLong(0);
        }
    }

    @Right({})
    static final class HeldLock extends Case {
        final ReentrantLock lock = new ReentrantLock();

        @Override
        Object on(String word, long number) {
            if (!lock.isHeldByCurrentThread()) {
                lock.lock();
            }
            return lock.getHoldCount();
        }
    }

    private Others() {}
}
