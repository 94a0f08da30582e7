-- The roles and the database. As a superuser:
--   psql --set owner_password=… --set server_password=… --file /usr/share/saltern/roles.sql postgres
-- The owner migrates and owns the schema; the server's role may do what the migrations grant to the group.
\set ON_ERROR_STOP on
CREATE ROLE saltern_server NOLOGIN;
CREATE ROLE saltern_owner LOGIN PASSWORD :'owner_password';
CREATE ROLE saltern_app LOGIN PASSWORD :'server_password' IN ROLE saltern_server;
CREATE DATABASE saltern OWNER saltern_owner ENCODING 'UTF8' TEMPLATE template0;
REVOKE ALL ON DATABASE saltern FROM PUBLIC;
GRANT CONNECT ON DATABASE saltern TO saltern_server;
