package nstorm.wire.json;

import com.google.gson.JsonArray;
import com.google.gson.JsonElement;
import com.google.gson.JsonNull;
import com.google.gson.JsonObject;
import com.google.gson.JsonPrimitive;
import com.google.gson.Strictness;
import com.google.gson.stream.JsonReader;
import com.google.gson.stream.JsonToken;
import com.google.gson.stream.MalformedJsonException;
import java.io.IOException;
import java.io.StringReader;
import java.math.BigDecimal;
import java.nio.ByteBuffer;
import java.nio.charset.CharacterCodingException;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.List;
import java.util.Set;

/** Strict reading of one JSON object: a wrong, missing or unknown field is refused by its path. */
public final class JsonFields {

    /** Reads one element of a list. */
    public interface ItemReader<T> {
        T read(JsonFields fields) throws WireException;
    }

    private final String path;
    private final JsonObject object;

    private JsonFields(String path, JsonObject object) {
        this.path = path;
        this.object = object;
    }

    /** Reads UTF-8 JSON whose top is an object. */
    public static JsonFields parse(byte[] json) throws WireException {
        try {
            String text = StandardCharsets.UTF_8.newDecoder().decode(ByteBuffer.wrap(json)).toString();
            JsonReader reader = new JsonReader(new StringReader(text));
            reader.setStrictness(Strictness.STRICT);
            JsonElement top = element(reader);
            if (reader.peek() != JsonToken.END_DOCUMENT) {
                throw new WireException("more than one JSON value");
            }
            return object("", top);
        } catch (CharacterCodingException e) {
            throw new WireException("not UTF-8", e);
        } catch (IOException | IllegalStateException e) {
            throw new WireException("not JSON: " + e.getMessage(), e);
        }
    }

    /** Gson's own reading would take a key that stands twice. */
    private static JsonElement element(JsonReader reader) throws IOException {
        switch (reader.peek()) {
            case BEGIN_OBJECT:
                return members(reader);
            case BEGIN_ARRAY:
                return items(reader);
            case STRING:
                return new JsonPrimitive(reader.nextString());
            case NUMBER:
                return new JsonPrimitive(new BigDecimal(reader.nextString()));
            case BOOLEAN:
                return new JsonPrimitive(reader.nextBoolean());
            default:
                reader.nextNull();
                return JsonNull.INSTANCE;
        }
    }

    private static JsonObject members(JsonReader reader) throws IOException {
        JsonObject members = new JsonObject();
        reader.beginObject();
        while (reader.hasNext()) {
            String name = reader.nextName();
            if (members.has(name)) {
                throw new MalformedJsonException("key '" + name + "' stands twice");
            }
            members.add(name, element(reader));
        }
        reader.endObject();
        return members;
    }

    private static JsonArray items(JsonReader reader) throws IOException {
        JsonArray items = new JsonArray();
        reader.beginArray();
        while (reader.hasNext()) {
            items.add(element(reader));
        }
        reader.endArray();
        return items;
    }

    /** Refuses any field that is not named here. */
    public void only(String... names) throws WireException {
        for (String name : object.keySet()) {
            if (!Set.of(names).contains(name)) {
                throw wrong(name, "is not known");
            }
        }
    }

    public String text(String name) throws WireException {
        JsonElement value = value(name);
        if (!(value instanceof JsonPrimitive primitive) || !primitive.isString() || primitive.getAsString().isEmpty()) {
            throw wrong(name, "is not a text: " + value);
        }
        return primitive.getAsString();
    }

    public String textOrNull(String name) throws WireException {
        return value(name).isJsonNull() ? null : text(name);
    }

    /** A whole number not below the least allowed. */
    public long whole(String name, long least) throws WireException {
        JsonElement value = value(name);
        if (value instanceof JsonPrimitive primitive && primitive.isNumber()) {
            try {
                long number = Long.parseLong(primitive.getAsString());
                if (number >= least) {
                    return number;
                }
            } catch (NumberFormatException e) {
                // falls through to the one message
            }
        }
        throw wrong(name, "is not a whole number >= " + least + ": " + value);
    }

    public <E extends Enum<E>> E choice(String name, Class<E> type) throws WireException {
        String text = text(name);
        try {
            return Enum.valueOf(type, text);
        } catch (IllegalArgumentException e) {
            throw wrong(name, "is not a " + type.getSimpleName() + ": '" + text + "'");
        }
    }

    /** A list of exactly two, whose items are then read as fields "0" and "1". */
    public JsonFields pair(String name) throws WireException {
        JsonArray items = array(name);
        if (items.size() != 2) {
            throw wrong(name, "is not a list of two: " + items);
        }
        JsonObject numbered = new JsonObject();
        numbered.add("0", items.get(0));
        numbered.add("1", items.get(1));
        return new JsonFields(at(name), numbered);
    }

    public <T> List<T> list(String name, ItemReader<T> item) throws WireException {
        JsonArray items = array(name);
        List<T> read = new ArrayList<>(items.size());
        for (int i = 0; i < items.size(); i++) {
            read.add(item.read(object(at(name) + "[" + i + "]", items.get(i))));
        }
        return List.copyOf(read);
    }

    public WireException wrong(String name, String what) {
        return new WireException(at(name) + " " + what);
    }

    private static JsonFields object(String path, JsonElement value) throws WireException {
        if (!value.isJsonObject()) {
            throw new WireException((path.isEmpty() ? "the top" : path) + " is not an object: " + value);
        }
        return new JsonFields(path, value.getAsJsonObject());
    }

    private JsonArray array(String name) throws WireException {
        JsonElement value = value(name);
        if (!value.isJsonArray()) {
            throw wrong(name, "is not a list: " + value);
        }
        return value.getAsJsonArray();
    }

    private JsonElement value(String name) throws WireException {
        JsonElement value = object.get(name);
        if (value == null) {
            throw wrong(name, "is missing");
        }
        return value;
    }

    private String at(String name) {
        return path.isEmpty() ? name : path + "." + name;
    }
}
