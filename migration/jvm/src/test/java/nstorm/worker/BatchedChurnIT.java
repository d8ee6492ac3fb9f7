package nstorm.worker;

/** The same where each of Storm's threads has a batch of each queue, which leads back to the queue. */
class BatchedChurnIT extends ExecutorChurnIT {
    @Override
    int producerBatch() {
        return 100;
    }
}
