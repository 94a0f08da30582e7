-- Fewer conditions on what log-ins, failures and views write.
-- compatible with: 8

-- PostgreSQL reads the text of every CHECK of a table again in each statement that writes to it. Those of shares were more
-- than half of what counting a view costs. What goes restricts what the program checks before it sends anything (lengths,
-- ranges of what somebody has sent); shares_check stays, for no view beyond the last, and failed_attempts_check, for a count
-- of each kind.
ALTER TABLE saltern.shares
    DROP CONSTRAINT shares_share_id_check, DROP CONSTRAINT shares_manage_hash_check,
    DROP CONSTRAINT shares_format_check, DROP CONSTRAINT shares_salt_check, DROP CONSTRAINT shares_iterations_check,
    DROP CONSTRAINT shares_sealed_check, DROP CONSTRAINT shares_max_views_check, DROP CONSTRAINT shares_views_check;
ALTER TABLE saltern.sessions
    DROP CONSTRAINT sessions_token_hash_check;
ALTER TABLE saltern.failed_attempts
    DROP CONSTRAINT failed_attempts_subject_check, DROP CONSTRAINT failed_attempts_counter_check,
    DROP CONSTRAINT failed_attempts_streak_check;
