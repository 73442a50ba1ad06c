// How the search orders its results: pages before notebooks, which tell a story around a word, and
// before generated reference pages, unless a name of the code itself was asked for. The numbers but
// for `score` are Sphinx's own.
var Scorer = {
  score: ([page, , , , score, , kind]) =>
    /^(reference|notebooks)\//.test(page) && kind !== "object" ? score - 20 : score,
  objNameMatch: 11,
  objPartialMatch: 6,
  objPrio: { 0: 15, 1: 5, 2: -5 },
  objPrioDefault: 0,
  title: 15,
  partialTitle: 7,
  term: 5,
  partialTerm: 2,
};
