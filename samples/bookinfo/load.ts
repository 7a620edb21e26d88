/**
 * Many calls at the same time, and what became of them: `node load.ts URL [CALLS]`.
 */
const [url = "http://details:9080/details/0", calls = "40"] = process.argv.slice(2);
const answers = await Promise.all(
  Array.from({ length: Number(calls) }, async () => {
    try {
      const response = await fetch(url);
      await response.arrayBuffer();
      return String(response.status);
    } catch (error) {
      return error instanceof Error ? error.message : String(error);
    }
  }),
);
const counts = Map.groupBy(answers, (answer) => answer);
for (const [answer, each] of [...counts].sort()) console.log(`${answer}: ${each.length} of ${answers.length}`);

export {};
