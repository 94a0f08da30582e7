-- The generation of tokens of devices before the present one. After a restore generations go on above the installation's
-- base, so it is not the number below.

ALTER TABLE saltern.logins
    ADD COLUMN device_generation_before bigint CHECK (device_generation_before < device_generation);

UPDATE saltern.logins SET device_generation_before = device_generation - 1 WHERE device_generation > 1;
