{#
  A test that fails if errors cost groups differently by more than a limit; see README.md.
  The model is one of cells: {{ isocost_tally(ref('scores')) }}, with the macro that
  `isocost sql --tally --dbt isocost_tally` writes.

  above       how far costs may differ
  fp, fn      what errors cost: cost = fp * generalized FPR + fn * generalized FNR
  groups      the number of group columns
  weighted    whether the cells were counted with --weight
  min_group   groups with fewer rows, or fewer than 5 of a label, are not compared
#}
{% test isocost_cost_difference(
    model, above, fp=0, fn=1, groups=1, weighted=false, min_group=30
) %}
{%- set keys = [] -%}
{%- for number in range(1, groups + 1) -%}{%- do keys.append('group_' ~ number) -%}{%- endfor -%}
{%- set w = 'w' if weighted else 'n' %}
WITH judged AS (
  SELECT
    cells.*,
    CASE
      WHEN label < 0 OR bin < 0{% if weighted %} OR weight_problem < 0{% endif %}
        {%- for key in keys %} OR {{ key }} IS NULL{% endfor %} THEN 1
      ELSE 0
    END AS is_bad
  FROM {{ model }} AS cells
),
costs AS (
  SELECT
    {{ keys | join(', ') }},
    SUM(n) AS people,
    SUM(CASE WHEN label = 0 THEN n ELSE 0 END) AS negatives,
    SUM(CASE WHEN label = 1 THEN n ELSE 0 END) AS positives,
    {{ fp }} * SUM(CASE WHEN label = 0 THEN wh ELSE 0 END)
      / NULLIF(SUM(CASE WHEN label = 0 THEN {{ w }} ELSE 0 END), 0)
    + {{ fn }} * SUM(CASE WHEN label = 1 THEN {{ w }} - wh ELSE 0 END)
      / NULLIF(SUM(CASE WHEN label = 1 THEN {{ w }} ELSE 0 END), 0) AS cost
  FROM judged
  WHERE is_bad = 0
  GROUP BY {{ keys | join(', ') }}
),
difference AS (
  SELECT
    COUNT(*) AS compared,
    MAX(cost) - MIN(cost) AS size
  FROM costs
  WHERE people >= {{ min_group }} AND negatives >= 5 AND positives >= 5
),
problems AS (
  SELECT 'rows with an invalid score, label, weight or group' AS problem, 1.0 * SUM(n) AS amount
  FROM judged
  WHERE is_bad = 1
  UNION ALL
  SELECT 'fewer than two groups are large enough to be compared', 1.0 * compared
  FROM difference
  WHERE compared < 2
  UNION ALL
  SELECT 'costs differ by more than {{ above }}', 1.0 * size
  FROM difference
  WHERE compared >= 2 AND size > {{ above }}
)
SELECT problem, amount
FROM problems
WHERE amount IS NOT NULL
{% endtest %}
