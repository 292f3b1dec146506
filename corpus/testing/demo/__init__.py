"""The demo web: eight small hosts on loopback, written for this project, that show every fate a page can meet.

`pages` reads the texts, `answers` decides what each path answers, `server` serves it, `shows` says what a crawl of it
must find, and `settings` writes the configuration that crawls it. Nothing here reaches beyond loopback.
"""
