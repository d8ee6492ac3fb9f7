"""One search in a process of its own: the question comes on standard input, the answer goes out."""

import os
import pickle
import sys

from controller.policies.partition.search import Question, search_inline

if __name__ == "__main__":
    os.setpriority(os.PRIO_PROCESS, 0, 19)  # whatever the service's own is
    question = pickle.load(sys.stdin.buffer)
    assert isinstance(question, Question)
    pickle.dump(search_inline(question), sys.stdout.buffer)
