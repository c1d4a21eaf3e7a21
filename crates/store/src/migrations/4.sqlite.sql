CREATE TABLE store_changes (
    revision INTEGER PRIMARY KEY,
    identity TEXT NOT NULL
) STRICT;
INSERT INTO store_changes (revision, identity) SELECT revision, lower(hex(randomblob(16))) FROM store_state;

CREATE TRIGGER store_changed AFTER UPDATE OF revision ON store_state
BEGIN
    DELETE FROM store_changes WHERE revision >= NEW.revision;
    DELETE FROM store_changes WHERE revision <= NEW.revision - 10000;
    INSERT INTO store_changes (revision, identity) VALUES (NEW.revision, lower(hex(randomblob(16))));
END;
