#include <stdio.h>
#include <stdlib.h>

int main(int count, char **words) {
    int most = atoi(words[1]);
    for (int n = 2; n <= most; n++) {
        int prime = 1;
        for (int d = 2; d * d <= n && prime; d++) prime = n % d != 0;
        if (prime) printf("%d\n", n);
    }
    return 0;
}
