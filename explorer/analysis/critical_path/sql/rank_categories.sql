-- rank_categories: the categories of a rank's events.
-- Needs: events
-- Parameters: the rank
-- Columns
--   category VARCHAR - Category
SELECT DISTINCT category FROM events WHERE rank = ? ORDER BY category
