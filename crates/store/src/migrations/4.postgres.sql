CREATE TABLE store_changes (
    revision BIGINT PRIMARY KEY,
    identity TEXT NOT NULL
);
INSERT INTO store_changes (revision, identity) SELECT revision, gen_random_uuid()::text FROM store_state;

CREATE FUNCTION store_changed() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    DELETE FROM store_changes WHERE revision >= NEW.revision;
    DELETE FROM store_changes WHERE revision <= NEW.revision - 10000;
    INSERT INTO store_changes (revision, identity) VALUES (NEW.revision, gen_random_uuid()::text);
    RETURN NULL;
END
$$;
CREATE TRIGGER store_changed AFTER UPDATE OF revision ON store_state
    FOR EACH ROW EXECUTE FUNCTION store_changed();
