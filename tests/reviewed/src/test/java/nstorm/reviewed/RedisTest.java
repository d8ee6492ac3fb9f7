package nstorm.reviewed;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertTrue;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import java.nio.file.Files;
import java.nio.file.Path;
import java.util.HashMap;
import java.util.List;
import java.util.stream.Stream;
import nstorm.memory.Reviewed.How;
import org.apache.storm.redis.bolt.RedisStoreBolt;
import org.apache.storm.redis.common.config.JedisPoolConfig;
import org.apache.storm.redis.common.mapper.RedisDataTypeDescription;
import org.apache.storm.redis.common.mapper.RedisDataTypeDescription.RedisDataType;
import org.apache.storm.redis.common.mapper.RedisStoreMapper;
import org.apache.storm.tuple.ITuple;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import redis.clients.jedis.Jedis;

/** RedisStoreBolt on a server, where there is one on the path: one copy writes and is cleaned up, and another goes on. */
class RedisTest {
    @TempDir
    Path folder;

    /** Each number by itself. */
    static final class Numbers implements RedisStoreMapper {
        @Override
        public RedisDataTypeDescription getDataTypeDescription() {
            return new RedisDataTypeDescription(RedisDataType.STRING);
        }

        @Override
        public String getKeyFromTuple(ITuple tuple) {
            return tuple.getValue(0).toString();
        }

        @Override
        public String getValueFromTuple(ITuple tuple) {
            return tuple.getValue(0).toString();
        }
    }

    private static boolean isOnThePath(String program) {
        return Stream.of(System.getenv("PATH").split(":")).anyMatch(one -> Files.isExecutable(Path.of(one, program)));
    }

    /** The clients that the server knows, besides the one that asks. */
    private static int others(Jedis jedis) {
        String line = jedis.info("clients")
                .lines()
                .filter(one -> one.startsWith("connected_clients:"))
                .findFirst()
                .orElseThrow();
        return Integer.parseInt(line.split(":")[1].trim()) - 1;
    }

    private static int othersOnceClosed(Jedis jedis) throws InterruptedException {
        for (int tries = 0; others(jedis) > 0 && tries < 50; tries++) {
            Thread.sleep(100);
        }
        return others(jedis);
    }

    @Test
    void allIsWrittenAndNoConnectionIsLeft() throws Exception {
        assumeTrue(isOnThePath("redis-server"), "there is no redis-server on the path");
        int port = Server.freePort();
        List<String> command = List.of(
                "redis-server",
                "--bind",
                "127.0.0.1",
                "--port",
                String.valueOf(port),
                "--dir",
                folder.toString(),
                "--save",
                "");
        JedisPoolConfig pool =
                new JedisPoolConfig.Builder().setHost("127.0.0.1").setPort(port).build();
        try (Server server = Server.start(command, port, folder.resolve("redis.log"));
                Jedis jedis = new Jedis("127.0.0.1", port)) {
            RedisStoreBolt bolt = new RedisStoreBolt(pool, new Numbers());
            Copy source = new Copy(bolt, new HashMap<>());
            assertEquals(How.RENEW, source.verdict().how());
            source.take(0, 1000);
            assertNull(source.remembers());
            assertTrue(others(jedis) > 0, "its pool is connected");
            source.cleanUp();
            assertEquals(0, othersOnceClosed(jedis));
            Copy target = new Copy(bolt, new HashMap<>());
            target.take(1000, 2000);
            target.cleanUp();
            assertEquals(2000, source.acked.get() + target.acked.get());
            assertEquals(0, source.failed.get() + target.failed.get());
            assertEquals(2000, jedis.dbSize());
        }
    }
}
