"""A PostgreSQL server for one container, for trying Pilothouse out on a cluster.

    python -I -m pilothouse.store.bundled VOLUME --password-file FILE --run DIR

One process supervises one server whose data lies on VOLUME. It makes the data once, holds a lock on the volume for
as long as any process of the server lives, and ends when the server ends: whoever runs the container starts it
again. Clients come by TCP as the user `pilothouse`, to the database of that name, with the password of the file
(scram-sha-256) and no rights beyond it; the superuser can be had through the socket in DIR alone. SIGTERM
stops the server at once and in order: clients are cut off, what was committed is on the volume.
"""
