package nstorm.worker;

/** The same where each of Storm's threads has a batch of each queue, which leads back to the queue. */
class BatchedChurnIT extends ExecutorChurnIT {
    @Override
    int producerBatch() {
        return 100;
    }

    /**
     * A thread lets go of a batch that was forgotten only when it looks through its table of them, so of all queues some 50 to 70 of
     * 265 kB each were still there, now more and now fewer. Were each kept, it would be 80 MB.
     */
    @Override
    long noiseBytes() {
        return 40_000_000;
    }
}
