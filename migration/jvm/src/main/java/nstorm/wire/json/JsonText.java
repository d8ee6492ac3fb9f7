package nstorm.wire.json;

import com.google.gson.stream.JsonWriter;
import java.io.IOException;
import java.io.StringWriter;
import java.io.UncheckedIOException;
import java.nio.charset.StandardCharsets;
import java.util.Collection;

/** Writes compact JSON, its keys in the order of the calls; nulls are written. */
public final class JsonText {

    /** Writes one element of a list. */
    public interface ItemWriter<T> {
        void write(JsonText text, T item);
    }

    private interface Step {
        void run() throws IOException;
    }

    private final StringWriter out = new StringWriter();
    private final JsonWriter json = new JsonWriter(out);

    public JsonText() {
        json.setSerializeNulls(true);
        json.setHtmlSafe(false);
    }

    public JsonText open() {
        return step(json::beginObject);
    }

    public JsonText open(String name) {
        return step(() -> json.name(name).beginObject());
    }

    public JsonText close() {
        return step(json::endObject);
    }

    public JsonText put(String name, long value) {
        return step(() -> json.name(name).value(value));
    }

    public JsonText put(String name, double value) {
        return step(() -> json.name(name).value(value));
    }

    public JsonText put(String name, boolean value) {
        return step(() -> json.name(name).value(value));
    }

    /** The text of a value, or null. */
    public JsonText put(String name, Object value) {
        return step(() -> json.name(name).jsonValue(value == null ? null : quoted(value.toString())));
    }

    public <T> JsonText list(String name, Collection<T> items, ItemWriter<T> item) {
        step(() -> json.name(name).beginArray());
        items.forEach(each -> item.write(this, each));
        return step(json::endArray);
    }

    /** An already nested object under a name, or null. */
    public <T> JsonText put(String name, T value, ItemWriter<T> item) {
        step(() -> json.name(name));
        if (value == null) {
            return step(json::nullValue);
        }
        item.write(this, value);
        return this;
    }

    /** An element of a list. */
    public JsonText value(long number) {
        return step(() -> json.value(number));
    }

    /** An element of a list. */
    public JsonText value(String text) {
        return step(() -> json.jsonValue(quoted(text)));
    }

    /** A list of numbers as an element of a list. */
    public JsonText values(long... values) {
        step(json::beginArray);
        for (long value : values) {
            step(() -> json.value(value));
        }
        return step(json::endArray);
    }

    /** A list of mixed values as an element of a list. */
    public JsonText listOf(Runnable items) {
        step(json::beginArray);
        items.run();
        return step(json::endArray);
    }

    public byte[] bytes() {
        return out.toString().getBytes(StandardCharsets.UTF_8);
    }

    /** As Python's json module quotes: gson would write U+2028 and U+2029 in another way. */
    private static String quoted(String text) {
        StringBuilder quoted = new StringBuilder(text.length() + 2).append('"');
        for (int i = 0; i < text.length(); i++) {
            char c = text.charAt(i);
            int shortForm = "\b\f\n\r\t\"\\".indexOf(c);
            if (shortForm >= 0) {
                quoted.append('\\').append("bfnrt\"\\".charAt(shortForm));
            } else if (c < 0x20) {
                quoted.append(String.format("\\u%04x", (int) c));
            } else {
                quoted.append(c);
            }
        }
        return quoted.append('"').toString();
    }

    private JsonText step(Step step) {
        try {
            step.run();
            return this;
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        }
    }
}
