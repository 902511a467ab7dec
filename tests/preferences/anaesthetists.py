"""A published set of labels: how fit patients are for anaesthesia, as five anaesthetists saw it."""

import numpy as np

# Dawid and Skene, Maximum likelihood estimation of observer error-rates using the EM algorithm, Applied Statistics 28
# (1979), table 1: classes 1 to 4 of 45 patients. The first anaesthetist judged every patient three times and the four
# others once: three digits a patient, in ascending order, and then one each.
_LABELS = """
1111111 3334334 1122122 2223121 2223222 2223322 1222111 3333433 2222223
2232223 4444444 2223343 1111111 2223212 1121111 1112111 1111111 1111111
2222221 2221322 2222222 2222221 2223222 1222222 1111111 1111111 2232222
1111111 1111111 1121121 1111111 3333233 1111111 2222222 2223232 3344343
1222232 2233233 3333432 1111111 1111111 1122111 2232222 1121111 2222222
"""
_WHO = (0, 0, 0, 1, 2, 3, 4)

ANAESTHETISTS = np.zeros((45, 5, 4), int)  # [patients, anaesthetists, classes]
for patient, labels in enumerate(_LABELS.split()):
    for who, label in zip(_WHO, labels, strict=True):
        ANAESTHETISTS[patient, who, int(label) - 1] += 1

# The maximum of the likelihood to which the shares of labels lead, computed independently; the paper prints the
# prevalences as .40, .42, .11 and .07.
PREVALENCE = (0.399555, 0.421983, 0.111795, 0.066667)
LOG_LIKELIHOOD = -192.8908812142
